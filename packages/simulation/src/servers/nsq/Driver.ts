/** The adapter's driver over a simulated network, in place of nsqjs. */
import type { Address, Connection, Driver, Identity, Listener, Settings } from "@requeue/adapter-nsq/driver"
import * as Commands from "./Commands.ts"
import type * as Network from "./Network.ts"
import type { Frame } from "./Outbox.ts"

/** The text of nsqjs for a publish whose connection ended before the answer. */
const closedText = "nsqd connection closed"

/** The text of a connection that ended without an error. */
const endedText = "nsqd closed the connection"

const hostPort = ({ host, port }: Address): string => (host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`)

/** Whether nsqd keeps the connection after this error. */
const isKept = (text: string): boolean => /^E_(FIN|REQ|TOUCH)_FAILED /.test(text)

/** Runs something later, or rejects when the signal aborts. */
const later = <A>({ host }: Network.Network, signal: AbortSignal, run: () => A): Promise<A> =>
  new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(new Error("the connection attempt was cancelled")))
    host.after(0.5, () => {
      try {
        if (!signal.aborted) resolve(run())
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error)))
      }
    })
  })

/** Runs callbacks half a millisecond later, those of one moment together. */
const soonOn = ({ after, now }: Network.Network["host"]): ((run: () => void) => void) => {
  let last: { readonly at: number; readonly runs: Array<() => void> } | undefined
  return (run) => {
    if (last?.at === now()) return void last.runs.push(run)
    const runs = [run]
    last = { at: now(), runs }
    after(0.5, () => {
      for (const each of runs) each()
    })
  }
}

const identityOf = (text: string): Identity => {
  const answer = JSON.parse(text) as Readonly<Record<string, unknown>> // nsqd answers an object
  return {
    version: String(answer["version"]),
    maxRdyCount: Number(answer["max_rdy_count"]),
    msgTimeout: Number(answer["msg_timeout"]),
    maxMsgTimeout: Number(answer["max_msg_timeout"]),
    notes: []
  }
}

const identify = (clientId: string, settings: Settings, messageTimeout: number | undefined): Commands.Command => {
  const data = {
    client_id: clientId,
    user_agent: settings.userAgent,
    heartbeat_interval: settings.heartbeat,
    output_buffer_timeout: settings.outputBufferTimeout,
    msg_timeout: messageTimeout ?? null
  }
  return { name: "IDENTIFY", args: [], body: Buffer.from(JSON.stringify(data)) }
}

/** A connection that is being opened. */
interface Opening {
  readonly clientId: string
  readonly purpose: string
  readonly settings: Settings
  readonly address: Address
  readonly messageTimeout: number | undefined
  /** The command after `IDENTIFY`, if any. */
  readonly next: Commands.Command | undefined
  readonly on: Listener
  /** Calls back after a write. */
  readonly soon: (run: () => void) => void
  /** nsqd's answers to publishes; an error after which it has closed the connection. */
  readonly answered: (error: Error | null) => void
}

/** Opens a connection, and completes its handshake. */
// Long, because its functions share the state of one connection, as in the real driver.
const open = async (
  network: Network.Network,
  { address, answered, clientId, messageTimeout, next, on, purpose, settings, soon }: Opening,
  signal: AbortSignal
): Promise<Connection & { readonly publish: (command: Commands.Command) => void }> => {
  const { host } = network
  const at = hostPort(address)
  const opened = Promise.withResolvers<Identity>()
  let identity: Identity | undefined
  let failure: Error | undefined
  let [isReady, isClosed] = [false, false]
  let [heard, heartbeats] = [0, 0]
  let stopped = (): void => {}
  let since = host.now()

  const closed = (): void => {
    if (isClosed) return
    isClosed = true
    link?.drop()
    stopped()
    const error = failure ?? new Error(endedText)
    if (isReady) on.closed(error)
    else opened.reject(error)
  }
  const ready = (): void => {
    isReady = true
    since = host.now()
    opened.resolve(identity!)
  }
  const responded = (text: string): void => {
    if (identity === undefined) {
      identity = identityOf(text)
      if (next === undefined) ready()
      else link?.write(next)
    } else if (!isReady) ready()
    else if (text === "CLOSE_WAIT") stopped()
    else answered(null)
  }
  const failed = (text: string): void => {
    if (isReady && isKept(text)) return on.refused(text)
    failure ??= new Error(text)
    answered(failure)
    closed()
  }
  const arrived = (frame: Frame): void => {
    if (isClosed) return
    heard++
    if (frame._tag === "Message") on.message(frame.payload)
    else if (frame._tag === "Response") responded(frame.text)
    else failed(frame.text)
  }

  const link = await later(network, signal, () => network.connect(at, { arrived, closed }, { clientId, purpose }))
  signal.addEventListener("abort", () => {
    if (isReady) return
    failure = new Error("the connection attempt was cancelled")
    closed()
  })
  link?.write(identify(clientId, settings, messageTimeout))
  await opened.promise

  const writeAll = (commands: ReadonlyArray<Commands.Command>): void => {
    for (const command of commands) link?.write(command)
  }
  return {
    clientId,
    identity: identity!,
    isOpen: () => !isClosed,
    heard: () => {
      // Without a timer for each heartbeat.
      if (link?.isAlive() === true) heartbeats = Math.floor((host.now() - since) / settings.heartbeat)
      return heard + heartbeats
    },
    write: (commands, done) => {
      if (isClosed) return done(failure ?? new Error("the connection is closed"))
      writeAll(Commands.read(Buffer.from(commands, "latin1")))
      soon(() => done(isClosed ? new Error(endedText) : null))
    },
    stop: () =>
      new Promise((resume) => {
        stopped = resume
        if (isClosed) resume()
        else writeAll([{ name: "CLS", args: [], body: Buffer.alloc(0) }])
      }),
    end: () => link?.end(),
    destroy: (because) => {
      failure ??= because
      closed()
    },
    publish: (command) => writeAll([command])
  }
}

/** The driver of one process. Its connections have the client ids `<process>-1`, `<process>-2` and so on. */
export const make = (network: Network.Network, process = "client"): Driver => {
  let connections = 0
  const nextId = (): string => `${process}-${++connections}`
  const soon = soonOn(network.host)
  const ignore: Listener = { message: () => {}, refused: () => {}, closed: () => {} }

  return {
    subscribe: (settings, address, { channel, messageTimeout, topic }, on, signal) => {
      const next = { name: "SUB", args: [topic, channel], body: Buffer.alloc(0) }
      const purpose = `consume ${topic}`
      const request = {
        clientId: nextId(),
        purpose,
        settings,
        address,
        messageTimeout,
        next,
        on,
        soon,
        answered: () => {}
      }
      return open(network, request, signal)
    },
    connectPublisher: async (settings, address, closed, signal) => {
      const waiting: Array<(error: Error | null) => void> = []
      let isRefused = false
      const request: Opening = {
        clientId: nextId(),
        purpose: "publish",
        settings,
        address,
        messageTimeout: settings.messageTimeout,
        next: undefined,
        soon,
        on: {
          ...ignore,
          closed: (error) => {
            for (const done of waiting.splice(0)) done(new Error(closedText))
            closed(error)
          }
        },
        answered: (error) => {
          if (error !== null) isRefused = true
          waiting.shift()?.(error)
        }
      }
      const connection = await open(network, request, signal)
      return {
        ...connection,
        isOpen: () => connection.isOpen() && !isRefused,
        publish: (commands) => {
          for (const { command, done } of commands) {
            if (!connection.isOpen()) done(new Error(closedText))
            else {
              waiting.push(done)
              for (const each of Commands.read(command)) connection.publish(each)
            }
          }
        }
      }
    },
    ask: ({ url }, path, { method, signal }) =>
      new Promise((resolve, reject) => {
        signal.addEventListener("abort", () => reject(new Error("the request was cancelled")))
        const caller = { clientId: undefined, purpose: `ask ${path.split("?")[0]}` }
        network.request(url, method, `/${path}`, caller).then(resolve, reject)
      })
  }
}
