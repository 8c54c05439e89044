import { defineConfig } from "vitest/config"

// One file after the other: what they say about times holds only where no other file keeps the machine busy.
export default defineConfig({ test: { fileParallelism: false, maxConcurrency: 6 } })
