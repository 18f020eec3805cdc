"""Files of uploads and of texts: their rows. The bytes are blobs."""
