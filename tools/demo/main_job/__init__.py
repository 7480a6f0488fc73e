"""The main job: two trainings alone, then sharing the cards of two nodes. See docs/demo.md."""
