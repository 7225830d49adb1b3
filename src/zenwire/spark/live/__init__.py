"""``format("zenoh")``: samples by offset, out of spools that recorders write.

spark.read.format("zenoh").option("spool", "spools/fleet").load()
spark.readStream.format("zenoh").option("spool", "spools/fleet").load()
"""
