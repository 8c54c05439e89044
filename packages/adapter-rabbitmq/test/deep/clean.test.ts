/** Stale objects are listed, drained and removed on a real server, and no message is lost, doubled for long, or early. */
import { Backoff, Consumer, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import type { Report } from "../../src/clean.ts"
import type { RabbitMqOptions } from "../../src/index.ts"
import { balanced, cleaned, exists, listed, names, none, place, underLoad } from "./cleaning.ts"
import { server } from "../real/server.ts"
import { consume, type Run } from "./traps/trap.ts"
import { ids, now, on, outgoing, until } from "../world.ts"

const { broker, url } = await server()
const management = broker.managementUrl ?? "http://127.0.0.1:15672"

const placed = (options: RabbitMqOptions.Options = {}) => place({ url, management, ...options })

const count = 40
const all = ids(count)

/** Milliseconds of a delay that has not ended when its queue is drained. */
const delay = 30_000

const layouts: ReadonlyArray<readonly [string, RabbitMqOptions.Options]> = [
  ["levels of another resolution", { topology: "levels", resolution: 200 }],
  ["classic levels", { topology: "levels", queueType: "classic" }],
  ["a retry queue of its own", { topology: "perMessageTtl" }],
  ["the shared retry queue", { topology: "perMessageTtlShared" }],
  ["a queue per delay", { topology: "perDelayQueue" }],
  ["a waiting queue, whose messages nobody moves on any more", { topology: "waitLoop" }]
]

describe.runIf(broker.managementUrl !== undefined).concurrent("what another layout has left is removed:", () => {
  test.each(layouts)("%s", { timeout: 120_000 }, async (_, layout) => {
    const { options, queue } = placed()
    const runs: Array<Run> = []
    // The arguments of the queue itself stay.
    const former = { ...options, ...layout, queues: { [queue]: { assert: "passive" } } } as const
    await on({ ...options }, () => Consumer.start(queue, { retry: none }, () => {}))
    const sent = now()
    await on(layout.queueType === undefined ? { ...options, ...layout } : former, (one) =>
      one.publish(all.map((id) => outgoing(queue, id, { delay })))
    )
    const before = await listed(queue, options)
    assert.isNotEmpty(before.objects)
    await on(options, () =>
      Effect.gen(function* () {
        yield* consume(queue, runs, { retry: none })
        const report = yield* Effect.promise(() => cleaned(queue, options))
        assert.deepStrictEqual(
          report.objects.filter(({ outcome }) => outcome === "kept"),
          []
        )
        assert.deepStrictEqual(names(report.objects), names(before.objects))
        assert.isAbove(report.moved, 0)
        yield* until(`${count} runs`, () => runs.length >= count)
      })
    )
    assert.deepStrictEqual(runs.map(({ id }) => id).toSorted(), [...all].toSorted())
    for (const { at } of runs) assert.isAtLeast(at - sent, delay)
    assert.deepStrictEqual((await listed(queue, options)).objects, [])
  })
})

test.concurrent.each(["", "present"])("a former prefix that is none is refused: %j", async (prefix) => {
  const refused = (run: typeof listed | typeof cleaned) =>
    run("orders", { url, management, prefix: "present" }, { prefix }).then(
      () => "done",
      (error: unknown) => String(error)
    )
  assert.match(await refused(listed), /prefix .*(is empty|is the prefix of this configuration)/)
  assert.match(await refused(cleaned), /prefix .*(is empty|is the prefix of this configuration)/)
})

describe.runIf(broker.managementUrl !== undefined)("while delays are published all the time", () => {
  const retry = RetryPolicy.make({ backoff: Backoff.constant(300) })

  test(
    "a rung that the configuration does not know is removed, and made again by those who use it",
    { timeout: 120_000 },
    async () => {
      const { options, prefix, queue } = placed()
      const rung = `${prefix}.v1.q.delay.300`
      const reports: Array<Report> = []
      let longest = 0
      const load = await underLoad(options, queue, retry, async () => {
        for (let turn = 0; turn < 2; turn++) {
          const begun = now()
          reports.push(await cleaned(queue, options))
          longest = Math.max(longest, now() - begun)
        }
      })
      const more = balanced(load, 300)
      // A consumer declares everything again after 25 s or more. What that meets is given back, and some of it run twice.
      if (longest < 25_000) assert.strictEqual(more, 0, "runs too many")
      for (const { objects } of reports) assert.include(names(objects), rung)
      assert.isFalse(await exists(url, `${prefix}.v1.q.cleaning`))
    }
  )

  test("a queue for one delay stays, as messages still arrive", { timeout: 120_000 }, async () => {
    const { options, queue } = placed({ topology: "perDelayQueue" })
    let report: Report | undefined
    const load = await underLoad(options, queue, retry, async () => {
      report = await cleaned(queue, { ...options, topology: "auto" })
    })
    balanced(load, 300)
    assert.deepStrictEqual(
      report?.objects.map(({ name, outcome, why }) => [name, outcome, why]),
      [[`${queue}_dlq_1`, "kept", "messages still arrive"]]
    )
  })
})
