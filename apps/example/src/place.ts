/** The place of a run's broker: the given address, or a broker that is started for the run. */
import { optionsOf } from "./brokers.ts"
import type { Options } from "./options.ts"

export interface Place extends AsyncDisposable {
  readonly url: string
  /** The name to show, without credentials. */
  readonly name: string
  /** How long the broker keeps messages that are still queued at the end. */
  readonly keeps: "nothing" | "until the end" | "for good"
  /** The path of the journal, next to a file that keeps the queues; `undefined` without such a file. */
  readonly journal?: string
}

const given = (url: string, keeps: Place["keeps"]): Place => {
  const { host, protocol } = new URL(url)
  return { url, name: host === "" ? protocol : `${protocol}//${host}`, keeps, [Symbol.asyncDispose]: async () => {} }
}

/** A broker without a server, whose queues are in a file. */
const inFile = (url: string): Place => {
  const path = decodeURIComponent(new URL(url).pathname)
  return path === ":memory:"
    ? given(url, "nothing")
    : { ...given(url, "for good"), name: path, journal: `${path}.journal` }
}

export const settle = async ({ broker, url }: Options, say: (line: string) => void): Promise<Place> => {
  if (broker === "memory") return given(url ?? "memory:", "nothing")
  if (broker === "sqlite") return inFile(url ?? "sqlite:./dispatcher.db")
  if (url !== undefined) return given(url, "for good")
  say(`Starting ${broker} on this machine ...`)
  // Imported lazily: the memory broker does not need it.
  const { start } = await import("@requeue/brokers")
  const server = await start(broker, { say })
  const address = new URL(server.url)
  for (const [option, value] of Object.entries(optionsOf(broker))) address.searchParams.set(option, value)
  // A broker without nodes was named by an environment variable, and outlives the run.
  const isStarted = server.nodes.length > 0
  return {
    url: address.href,
    name: `${server.version} on ${address.host}, from ${server.source}`,
    keeps: isStarted ? "until the end" : "for good",
    [Symbol.asyncDispose]: server.dispose
  }
}
