/** Conditions of connections: latency, and how they break. */
import type { Host } from "../Host.ts"
import type { Command } from "./Commands.ts"

/** The client of a connection or a request. */
export interface Caller {
  /** The name of the connection in nsqd's statistics; `undefined` for a request. */
  readonly clientId: string | undefined
  /** The client's activity there, such as `consume orders`. */
  readonly purpose: string
}

/** How a connection breaks: the milliseconds after which nothing arrives, and each end notices. */
export interface Break {
  readonly silent: number
  /** `undefined`: it notices only that it hears nothing. */
  readonly client: number | undefined
  readonly server: number
}

/** A direction: to nsqd, or to the client. */
export type Way = "up" | "down"

/** The effect of a fault on a command: see `Harness.Failure`. `refused` is for publishes. */
export type Failure = "refused" | "lostRequest" | "lostAnswer" | "lateAnswer"

/** The conditions of one connection, or of one request. */
export interface Conditions {
  /** Returns the milliseconds that a frame takes; `command` is one to nsqd. */
  readonly takes: (way: Way, command?: Command) => number
  /** Whether the connection breaks at a frame that is written now. */
  readonly breaks: (way: Way) => boolean
  /** Returns how it breaks. */
  readonly how: () => Break
  /** Returns what happens to a command that has arrived. */
  readonly fails: (command: Command) => Failure | undefined
}

/** Milliseconds after which nsqd ends a connection that it does not hear: two heartbeats of 10 seconds. */
export const silence = 20_000

/** Milliseconds of one way. */
const latency = { least: 0.1, most: 0.9 }

/** Both ends notice at once. */
export const atOnce: Break = { silent: 0, client: latency.most, server: latency.most }

/** A network without faults. */
export const good = (host: Host): Conditions => ({
  takes: () => latency.least + (latency.most - latency.least) * host.random("wire"),
  breaks: () => false,
  how: () => atOnce,
  fails: () => undefined
})
