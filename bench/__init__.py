"""Repeatable benchmarks, each beside its peers in the same run. Figures mean something only as ratios of one run."""
