/** The place of a run's broker: the given address, or a broker that is started for the run. */
import { optionsOf } from "./brokers.ts"
import type { Options } from "./options.ts"

export interface Place extends AsyncDisposable {
  readonly url: string
  /** The name to show, without credentials. */
  readonly name: string
  /** How long the broker keeps messages that are still queued at the end. */
  readonly keeps: "nothing" | "until the end" | "for good"
}

const given = (url: string, keeps: Place["keeps"]): Place => {
  const { host, protocol } = new URL(url)
  return { url, name: host === "" ? protocol : `${protocol}//${host}`, keeps, [Symbol.asyncDispose]: async () => {} }
}

export const settle = async ({ broker, url }: Options, say: (line: string) => void): Promise<Place> => {
  if (broker === "memory") return given(url ?? "memory:", "nothing")
  if (broker === "sqlite") return given(url ?? "sqlite:./dispatcher.db", "for good")
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
