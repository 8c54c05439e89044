import { defineConfig } from "vitest/config"

// Files of a worker share its process, and with it a server: see test/server.ts.
export default defineConfig({ test: { isolate: false } })
