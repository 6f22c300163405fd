"""soft_moe."""
