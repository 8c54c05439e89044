import { defineConfig } from "vitest/config"

// These end what hangs. No test is judged by how long it takes: machines are slow, or busy.
export default defineConfig({ test: { testTimeout: 60_000, expect: { poll: { timeout: 60_000 } } } })
