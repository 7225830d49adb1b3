"""What people look at: pages made of the tables."""
