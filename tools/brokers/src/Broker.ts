/** The interface of every broker, and the search for one. */

/** One server process. */
export interface Node {
  readonly name: string
  readonly url: string
  readonly managementUrl: string | undefined
  readonly port: number
  /** The process to signal, while it runs on this machine. */
  readonly pid: () => number | undefined
  /** Starts it with its data and ports; waits until it accepts connections. */
  readonly start: () => Promise<void>
  /** Kills it with SIGKILL. */
  readonly kill: () => Promise<void>
  /** Shuts it down in order. */
  readonly stop: () => Promise<void>
  /** `stop`, then `start`. */
  readonly restart: () => Promise<void>
  /** The end of its log. */
  readonly log: () => Promise<string>
}

/** A broker that accepts connections. `start`, `kill`, `stop` and `restart` mean all nodes. */
export interface Broker<N extends Node = Node> extends AsyncDisposable {
  readonly version: string
  /** Its origin, for messages. */
  readonly source: string
  /** The address of the first node, with its credentials; `managementUrl` has them, too. */
  readonly url: string
  readonly managementUrl: string | undefined
  /** Empty if an environment variable named the broker: then every control but `dispose` is refused. */
  readonly nodes: ReadonlyArray<N>
  readonly start: () => Promise<void>
  readonly kill: () => Promise<void>
  readonly stop: () => Promise<void>
  readonly restart: () => Promise<void>
  /** Ends everything that was started and removes its data. */
  readonly dispose: () => Promise<void>
}

/** The broker to start. */
export interface StartOptions {
  /**
   * `newest` is the newest without a download, `system` the machine's own; else a release, or a server by name. Default: newest.
   */
  readonly version?: string | undefined
  /** The number of nodes; the possible numbers depend on the broker. Default: 1. */
  readonly nodes?: number | undefined
  /** Milliseconds after which a start fails. Default: 300,000, because machines are slow or busy. */
  readonly deadline?: number | undefined
  /** Keeps the broker running when this process ends. Default: false. */
  readonly detached?: boolean | undefined
  /** Receives lines about the progress of long work. Default: writes them to standard error. */
  readonly say?: ((line: string) => void) | undefined
}

/** Adds the defaults to options. */
export const settingsOf = (options: StartOptions) => ({
  version: options.version ?? "newest",
  count: options.nodes ?? 1,
  deadline: options.deadline ?? 300_000,
  detached: options.detached ?? false,
  say: options.say ?? ((line: string) => console.error(line))
})

/** A way to obtain a broker. It throws `Unavailable` to let the next one try, any other error to end the search. */
export interface Source<Options extends StartOptions = StartOptions, B extends Broker = Broker> {
  readonly name: string
  readonly open: (options: Options) => Promise<B>
}

/** The error of a source that has no broker. */
export class Unavailable extends Error {
  override readonly name = "Unavailable"
}

/** Opens the first source that has a broker. Throws `Unavailable` with the reasons of all if none has one. */
export const firstOf = async (sources: ReadonlyArray<Source>, options: StartOptions, remedy: string) => {
  const reasons: Array<string> = []
  for (const source of sources) {
    try {
      return await source.open(options)
    } catch (cause) {
      if (!(cause instanceof Unavailable)) throw cause
      reasons.push(`- ${source.name}: ${cause.message}`)
    }
  }
  throw new Unavailable(`${remedy}\n${reasons.join("\n")}`)
}

/** Makes a broker of nodes that were started here. */
export const ofNodes = <N extends Node>(
  nodes: readonly [N, ...Array<N>],
  rest: Pick<Broker, "version" | "source" | "managementUrl" | "dispose">
): Broker<N> => {
  const all = (action: (node: N) => Promise<void>) => async () => {
    await Promise.all(nodes.map(action))
  }
  const stop = all((node) => node.stop())
  const start = all((node) => node.start())
  return {
    ...rest,
    url: nodes[0].url,
    nodes,
    start,
    stop,
    kill: all((node) => node.kill()),
    restart: async () => {
      await stop()
      await start()
    },
    [Symbol.asyncDispose]: rest.dispose
  }
}

/** Makes a broker that was started elsewhere, and is named by an environment variable. */
export const foreign = (variable: string, rest: Pick<Broker, "version" | "url" | "managementUrl">): Broker<never> => {
  const refuse = (action: string) => async () => {
    throw new Unavailable(`${action}() needs a broker that was started here: unset ${variable}`)
  }
  const dispose = async () => {}
  return {
    ...rest,
    source: variable,
    nodes: [],
    start: refuse("start"),
    kill: refuse("kill"),
    stop: refuse("stop"),
    restart: refuse("restart"),
    dispose,
    [Symbol.asyncDispose]: dispose
  }
}
