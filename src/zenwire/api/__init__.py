"""What programs use: values, handlers, sessions. The names are those of eclipse-zenoh."""
