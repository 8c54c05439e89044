/** One journey through the example on a real broker: dispatch, dead letters, redrive. */
import { expect, test } from "vitest"
import { start } from "./program.ts"

test("on RabbitMQ the books balance, before and after the redrive", async () => {
  const run = start("--json", "--broker", "rabbitmq", "--count", "200", "--seed", "7")
  const end = await run.ended()
  expect({ ...end, said: end.code === 0 ? "" : run.output.stderr }).toEqual({ code: 0, signal: null, said: "" })
  const report = run.report()
  expect(report).toMatchObject({ broker: "rabbitmq", balanced: true, early: 0, stopped: null, published: 200 })
  expect(report.redrive).toMatchObject({ balanced: true, delivered: 200, deadLettered: 0 })
})
