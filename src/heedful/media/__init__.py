"""Images, audio clips and videos: read from files, resampled or resized, augmented, and put together in batches."""
