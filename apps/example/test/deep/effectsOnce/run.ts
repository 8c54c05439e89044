/** Workers that are killed at every step, until all messages have ended; then the books. */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { Wait } from "@requeue/conformance"
import { Relay } from "@requeue/core"
import { connect } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import { adapters } from "./adapters.ts"
import { type Address, type Form, type Orders, queues, type Step, steps } from "./orders.ts"
import * as Rig from "./rig.ts"
import * as Tables from "./tables.ts"

const program = fileURLToPath(new URL("worker.ts", import.meta.url))

/** Maximum milliseconds of each wait. */
const deadline = 5 * 60_000

/** Of the steps that come once for each batch, a worker reaches fewer. */
const timesOf = (step: Step): number => (/ack|publishing/.test(step) ? 2 : 10)

export interface Books {
  readonly messages: number
  /** The steps at which workers have killed themselves. */
  readonly kills: ReadonlyArray<Step>
  readonly lostCommits: number
  readonly disturbances: number
  readonly runs: number
  /** The messages of the rows, and of the rows of those that they sent. */
  readonly effects: ReadonlyArray<number>
  readonly receipts: ReadonlyArray<number>
  /** The messages that are left in queues, dead-letter queues and the outbox. */
  readonly left: number
}

/** Returns which steps there are in this setup. */
const isDone =
  ({ broker, database }: Rig.Setup, form: Form) =>
  (step: Step): boolean =>
    (broker !== undefined || !step.endsWith("publishing")) &&
    (form === "transaction" ? database === "postgres" || step !== "in COMMIT" : !/within|COMMIT/.test(step))

/** Counts the messages of queues on a connection for each call: servers are restarted. */
const count = async (address: Address, names: ReadonlyArray<string>): Promise<number> => {
  await using requeue = await connect(address, { adapters, logger: false })
  let sum = 0
  for (const name of names) {
    const { delayed = 0, inFlight = 0, ready = 0 } = await requeue.counts(name)
    sum += delayed + inFlight + ready
  }
  return sum
}

// Long, because its parts share the state of the run.
export const run = async (setup: Rig.Setup, form: Form, messages: number, rounds: number): Promise<Books> => {
  const rig = await Rig.open(setup)
  const { direct, workers } = rig
  const children = new Set<ChildProcess>()
  const kills: Array<Step> = []
  let runs = 0
  let crashed: number | null = null

  const checkCrashed = () => {
    if (crashed !== null) throw new Error(`a worker ended with ${crashed}`)
  }
  const until = (what: string, holds: () => Promise<boolean>) => {
    const check = () => {
      checkCrashed()
      return holds()
    }
    return Effect.runPromise(Wait.until(what, check, deadline))
  }

  const begin = (kill: Orders["kill"]): ChildProcess => {
    const orders: Orders = { ...workers, form, kill }
    const child = spawn(process.execPath, ["--conditions=@requeue/source", program, JSON.stringify(orders)], {
      stdio: ["ignore", "pipe", "inherit"]
    })
    children.add(child)
    child.once("exit", (code) => {
      children.delete(child)
      if (code !== 0) crashed ??= code
    })
    child.stdout!.on("data", (bytes: Buffer) => (runs += String(bytes).split("\n").length - 1))
    return child
  }
  const end = async (child: ChildProcess, signal: "SIGKILL" | "SIGTERM") => {
    const closed = once(child, "close")
    child.kill(signal)
    await closed
  }
  const done = async (table: "effect" | "receipt") => new Set(await Tables.read(direct.database, table)).size
  /** False as well while a server is down. */
  const areWritten = () =>
    Promise.all([done("effect"), done("receipt")]).then(
      (counts) => counts.every((each) => each === messages),
      () => false
    )
  const left = async () => {
    const names = Object.values(queues).flatMap((name) => [name, `${name}.dlq`])
    const { broker, store } = direct
    return (await count(broker, names)) + (store ? await count(store, [Relay.queue, `${Relay.queue}.dlq`]) : 0)
  }

  /** The steps at which workers have yet to kill themselves. */
  const plan = Array.from({ length: rounds }, () => steps.filter(isDone(setup, form))).flat()

  try {
    await Tables.create(direct.database)
    const all = Array.from({ length: messages }, (_, of) => ({ id: `m${of}`, body: { of } }))
    await using sender = await connect(direct.broker, { adapters, logger: false })
    for (let from = 0; from < messages; from += 100) await sender.sendBatch(queues.work, all.slice(from, from + 100))
    await sender.close()

    /** Runs workers one after another, each until it has killed itself. */
    const lane = async () => {
      for (let step = plan.shift(); step !== undefined && !(await areWritten()); step = plan.shift()) {
        const child = begin({ step, time: 1 + ((plan.length * 7) % timesOf(step)) })
        await until(
          `the worker that kills itself ${step}`,
          async () => child.signalCode !== null || (await areWritten())
        )
        if (child.signalCode === null) await end(child, "SIGKILL")
        else kills.push(step)
      }
    }
    const disturb = async () => {
      for (const [index, disturbance] of rig.disturbances.entries()) {
        const least = ((index + 1) * messages) / (rig.disturbances.length + 2)
        await until(`${least} effects`, async () => (await done("effect")) >= least)
        await disturbance()
      }
    }
    const alive: Array<ChildProcess> = []
    const work = async () => {
      await Promise.all([lane(), lane()])
      alive.push(begin(undefined), begin(undefined))
    }
    await Promise.all([work(), disturb()])
    await until("all effects", areWritten)
    await until("empty queues", async () => (await left()) === 0)
    for (const child of alive) await end(child, "SIGTERM")
    checkCrashed()
    return {
      messages,
      kills,
      lostCommits: rig.lostCommits(),
      disturbances: rig.disturbances.length,
      runs,
      effects: await Tables.read(direct.database, "effect"),
      receipts: await Tables.read(direct.database, "receipt"),
      left: await left()
    }
  } finally {
    plan.splice(0)
    for (const child of children) await end(child, "SIGKILL")
    await rig.close()
  }
}
