"""quoll/listing."""
