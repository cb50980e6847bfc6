"""Images, audio clips and videos: read from files, resampled or resized, augmented, and combined into batches."""
