/** What every broker offers, and how one is found. */

/** One server process. */
export interface Node {
  readonly name: string
  readonly url: string
  readonly managementUrl: string | undefined
  readonly port: number
  /** The process to signal, while it runs and is one of this machine. */
  readonly pid: () => number | undefined
  /** Starts it with its data and ports; waits until it accepts connections. */
  readonly start: () => Promise<void>
  /** Ends it at once, with SIGKILL. */
  readonly kill: () => Promise<void>
  /** Lets it end in order. */
  readonly stop: () => Promise<void>
  /** `stop`, then `start`. */
  readonly restart: () => Promise<void>
  /** The end of its log. */
  readonly log: () => Promise<string>
}

/** A broker that accepts connections. `start`, `kill`, `stop` and `restart` mean all nodes. */
export interface Broker<N extends Node = Node> extends AsyncDisposable {
  readonly version: string
  /** Where it came from, for people. */
  readonly source: string
  /** Of the first node. The credentials are in it, and in the next. */
  readonly url: string
  readonly managementUrl: string | undefined
  /** Empty, and every control but `dispose` refused, when the environment named the broker. */
  readonly nodes: ReadonlyArray<N>
  readonly start: () => Promise<void>
  readonly kill: () => Promise<void>
  readonly stop: () => Promise<void>
  readonly restart: () => Promise<void>
  /** Ends what was started and removes its data. */
  readonly dispose: () => Promise<void>
}

export interface StartOptions {
  /**
   * `newest` at hand without a download, `system` for the machine's own, a release, or a server by name. Default: newest.
   */
  readonly version?: string | undefined
  /** How many there can be depends on the broker. Default: 1. */
  readonly nodes?: number | undefined
  /** Milliseconds until a start that is not done has failed. Default: 300,000, because machines are slow, or busy. */
  readonly deadline?: number | undefined
  /** Keep it running when this process ends. */
  readonly detached?: boolean | undefined
  /** Takes the progress of what takes long. Default: standard error. */
  readonly say?: ((line: string) => void) | undefined
}

/** What was asked for, with the defaults. */
export const settingsOf = (options: StartOptions) => ({
  version: options.version ?? "newest",
  count: options.nodes ?? 1,
  deadline: options.deadline ?? 300_000,
  detached: options.detached ?? false,
  say: options.say ?? ((line: string) => console.error(line))
})

/** A way to come by a broker. It throws `Unavailable` to let the next one try, any other error to end the search. */
export interface Source<Options extends StartOptions = StartOptions, B extends Broker = Broker> {
  readonly name: string
  readonly open: (options: Options) => Promise<B>
}

export class Unavailable extends Error {
  override readonly name = "Unavailable"
}

/** The first source that has one. */
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

/** A broker of nodes that were started here. */
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

/** A broker that somebody else runs. */
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
