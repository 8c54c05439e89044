import { defineConfig } from "vitest/config"

// A start may take all of its five minutes, where a machine is slow or busy, and a test may start more than one server.
export default defineConfig({ test: { testTimeout: 900_000, hookTimeout: 900_000 } })
