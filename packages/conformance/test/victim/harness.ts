/** The file broker, with a harness that looks into the file and breaks the driver. */
import { Broker } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { copyFileSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Harness from "../../src/Harness.ts"
import * as File from "./file.ts"
import * as FileBroker from "./FileBroker.ts"
import { pollInterval } from "./subscription.ts"
import { toDelivery } from "./toDelivery.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "requeue-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

export const layer = Layer.effectContext(
  Effect.gen(function* () {
    const first = join(yield* folder, "queues")
    const clock = yield* Clock.Clock
    const now = () => clock.currentTimeMillisUnsafe()
    const openFile = (at: string) =>
      Effect.acquireRelease(
        Effect.sync(() => File.open(at)),
        ({ close }) => Effect.sync(close)
      )
    let [boot, path, file] = [0, first, yield* openFile(first)]
    const open = Effect.suspend(() => {
      const own = boot
      return FileBroker.make(path, () => boot === own)
    })
    const { broker, driver } = yield* open
    let queues = 0
    /** Ends all processes, and starts again with a copy of the files, or with nothing. */
    const reboot = (keeps: () => boolean) =>
      Effect.gen(function* () {
        const next = `${first}.${++boot}`
        const isKept = keeps()
        for (const suffix of ["", "-wal"]) if (isKept) copyFileSync(`${path}${suffix}`, `${next}${suffix}`)
        path = next
        file = yield* openFile(next)
        return (yield* open).broker
      })
    const harness = Harness.Harness.of({
      name: "file",
      uniqueQueue: (base) =>
        Effect.sync(() => {
          const queue = `${base}-${++queues}`
          file.declare(queue)
          return queue
        }),
      publishRaw: (queue, body, headers) => Effect.sync(() => file.publishRaw(queue, body, headers, now())),
      deadLetters: (queue) =>
        Effect.sync(() => file.list(queue, now()).map((row) => toDelivery({ ...row, deliveries: row.deliveries + 1 }))),
      pending: (queue) => Effect.sync(() => file.count(queue, now())),
      cutConnections: undefined,
      restart: undefined,
      crash: reboot(() => true),
      powerCut: reboot(() => file.isSynced()),
      another: Effect.map(open, (other) => other.broker),
      failNext: (operation, failure) =>
        failure === "lateAnswer"
          ? undefined
          : Effect.acquireRelease(
              Effect.sync(() => {
                const fault = { operation, failure, happened: false }
                driver.fault = fault
                return () => fault.happened
              }),
              () => Effect.sync(() => (driver.fault = undefined))
            ),
      deleteQueue: (queue) => Effect.sync(() => file.deleteQueue(queue)),
      foreignQueue: (base) =>
        Effect.sync(() => {
          const queue = `${base}-${++queues}`
          file.declareLimited(queue, 2)
          return queue
        }),
      transactions: undefined,
      lateness: 2 * pollInterval,
      settleTime: 0
    })
    return Context.make(Broker.Broker, broker).pipe(Context.add(Harness.Harness, harness))
  })
)
