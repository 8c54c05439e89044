import { defineConfig } from "vitest/config"

// One file after the other in one process: they share a server (see test/server.ts), and what they say about times holds
// only where no other file keeps the machine busy.
// They start their own nsqd, whatever the environment names: several at once, with flags, and to be killed.
export default defineConfig({ test: { isolate: false, fileParallelism: false, env: { REQUEUE_NSQ_URL: "" } } })
