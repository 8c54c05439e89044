/** The conformance suite through pgbouncer in transaction mode: each statement may run on another connection. */
import { pgbouncer, start, Unavailable } from "@requeue/brokers"
import { afterAll, test } from "vitest"
import { registerOn } from "../real/suite.ts"

try {
  const server = await start("postgres", { parameters: { fsync: "off" } })
  const pooler = await pgbouncer(server, 20)
  afterAll(async () => {
    await pooler.dispose()
    await server.dispose()
  })
  const pooled = { ...server, url: pooler.url, nodes: [{ ...server.nodes[0]!, port: pooler.port }] }
  registerOn(pooled, "quiet", "ignored", { notify: false })
} catch (cause) {
  if (!(cause instanceof Unavailable)) throw cause
  test("conformance through pgbouncer", ({ skip }) => skip(cause.message))
}
