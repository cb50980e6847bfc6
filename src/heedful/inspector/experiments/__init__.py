"""Experiments on a trained model: ablation of attention heads, and minimal pairs that measure bias."""
