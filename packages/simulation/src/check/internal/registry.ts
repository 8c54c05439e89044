/** Lives by their names and numbers, created at first mention. */
import type { Copy, Delivery, Key } from "../../History.ts"
import type { Process, Scenario, Sending } from "../../Scenario.ts"
import * as Clock from "./Clock.ts"
import type { Attempt, CopyLife, DeliveryLife, KeyLife, ProcessLife } from "./Lives.ts"

/** The plan of a process by the name of one of its lives: the name of the process, and the number of the life. */
const planOf = ({ processes }: Scenario, life: string): Process | undefined =>
  processes.find(({ name }) => life.startsWith(name) && /^\d+$/.test(life.slice(name.length)))

const newKey = (key: Key, plan: Sending | undefined): KeyLife => ({
  key,
  plan,
  sending: undefined,
  sent: undefined,
  copies: []
})

const newCopy = (copy: Copy, message: KeyLife): CopyLife => ({
  copy,
  message,
  stored: undefined,
  gone: undefined,
  parent: undefined,
  deliveries: [],
  backs: [],
  children: [],
  written: undefined,
  bound: undefined
})

const newProcess = (name: string, plan: Process | undefined): ProcessLife => ({
  name,
  plan,
  clock: plan === undefined ? Clock.truth : Clock.make(plan.clock),
  started: undefined,
  version: undefined,
  draining: undefined,
  drained: undefined,
  killed: undefined,
  extendsLate: false,
  frozen: [],
  credits: [],
  deliveries: [],
  runs: [],
  settlings: [],
  attempts: [],
  told: [],
  pulls: []
})

/** Whether a broker delivers a copy before the requested delay is over. The receiver knows only the time in the metadata. */
const isBefore = ({ backs }: CopyLife, handedOut: DeliveryLife["handedOut"]): boolean =>
  handedOut !== undefined && handedOut.entry.at < (backs.at(-1)?.entry.due ?? 0)

const newDelivery = (
  delivery: Delivery,
  copy: CopyLife,
  process: ProcessLife,
  handedOut: DeliveryLife["handedOut"]
): DeliveryLife => ({
  delivery,
  copy,
  process,
  handedOut,
  isEcho: copy.deliveries.some((each) => each.back === undefined),
  bound: isBefore(copy, handedOut) ? copy.written : copy.bound,
  arrived: undefined,
  attempt: undefined,
  back: undefined,
  disconnected: -1,
  enlisted: -1,
  isRefused: false,
  runs: [],
  settlings: []
})

const newAttempt = (process: ProcessLife, copy: CopyLife, prior: Attempt | undefined): Attempt => ({
  process,
  copy,
  prior,
  deliveries: [],
  turns: [],
  settlings: [],
  decided: undefined,
  isOver: false
})

/** An empty registry. */
export const make = (scenario: Scenario) => {
  const keys = new Map<Key, KeyLife>()
  const copies = new Map<Copy, CopyLife>()
  const deliveries = new Map<Delivery, DeliveryLife>()
  const processes = new Map<string, ProcessLife>()
  const attempts: Array<Attempt> = []
  /** The last attempt of each process life and copy. */
  const last = new Map<ProcessLife, Map<CopyLife, Attempt>>()

  const keyOf = (key: Key): KeyLife => {
    let found = keys.get(key)
    if (found === undefined) {
      found = newKey(
        key,
        scenario.sendings.find((each) => each.key === key)
      )
      keys.set(key, found)
    }
    return found
  }

  const copyOf = (copy: Copy, key: Key): CopyLife => {
    let found = copies.get(copy)
    if (found === undefined) {
      found = newCopy(copy, keyOf(key))
      copies.set(copy, found)
      found.message.copies.push(found)
    }
    return found
  }

  const processOf = (name: string): ProcessLife => {
    let found = processes.get(name)
    if (found === undefined) {
      found = newProcess(name, planOf(scenario, name))
      processes.set(name, found)
      last.set(found, new Map())
    }
    return found
  }

  const handOut = (copy: CopyLife, process: ProcessLife, delivery: Delivery, seen: DeliveryLife["handedOut"]) => {
    const made = newDelivery(delivery, copy, process, seen)
    deliveries.set(delivery, made)
    copy.deliveries.push(made)
    return made
  }

  const begin = (process: ProcessLife, copy: CopyLife, prior: Attempt | undefined): Attempt => {
    const made = newAttempt(process, copy, prior)
    last.get(process)?.set(copy, made)
    process.attempts.push(made)
    attempts.push(made)
    return made
  }

  const known = (process: ProcessLife, copy: CopyLife) => last.get(process)?.get(copy)
  return {
    scenario,
    keys,
    copies,
    deliveries,
    processes,
    attempts,
    keyOf,
    copyOf,
    processOf,
    handOut,
    /** A delivery. One without a known broker entry, or even a number, belongs to an unknown copy, which has a negative number. */
    deliveryOf: (delivery: Delivery, key: Key, process: ProcessLife): DeliveryLife =>
      deliveries.get(delivery) ?? handOut(copyOf(-Math.abs(delivery), key), process, delivery, undefined),
    begin,
    known,
    /** The current attempt of a process with a copy. */
    attemptOf: (process: ProcessLife, copy: CopyLife): Attempt => {
      const found = known(process, copy)
      return found === undefined || found.isOver ? begin(process, copy, found) : found
    }
  }
}

/** All known lives. */
export type Registry = ReturnType<typeof make>
