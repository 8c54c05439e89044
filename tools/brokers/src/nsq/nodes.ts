/** The programs of one broker: an nsqlookupd, and each nsqd that reports to it. */
import type { Node } from "../Broker.ts"
import type { Instance } from "../Instance.ts"
import type { Host, Process } from "./Host.ts"
import { untilReady } from "../ready.ts"
import { identify } from "./identify.ts"

/** Flags of nsqd that tests may set, such as `{ "max-req-timeout": "3s" }`. https://nsq.io/components/nsqd.html */
export type Flags = { readonly [Flag in FlagName]?: string | number | undefined }

type FlagName =
  | "auth-http-address"
  | "deflate"
  | "max-body-size"
  | "max-msg-size"
  | "max-msg-timeout"
  | "max-rdy-count"
  | "max-req-timeout"
  | "mem-queue-size"
  | "msg-timeout"
  | "queue-scan-selection-count"
  | "snappy"
  | "sync-every"
  | "tls-cert"
  | "tls-client-auth-policy"
  | "tls-key"
  | "tls-required"
  | "tls-root-ca-file"

interface Program {
  readonly name: string
  readonly url: string
  readonly managementUrl: string
  readonly port: number
  readonly command: string
  readonly args: ReadonlyArray<string>
  /** Fails unless the program answers. */
  readonly ask: (milliseconds: number) => Promise<unknown>
}

interface Settings {
  readonly deadline: number
  readonly say: (line: string) => void
}

interface Started extends Node {
  readonly isAlive: () => Promise<boolean>
}

const toNode = (host: Host, { command, args, ask, ...program }: Program, { deadline, say }: Settings): Started => {
  const { name, port } = program
  let running: Process | undefined
  const isAlive = async () => (await running?.isAlive()) === true
  const ends = async (signal: "SIGTERM" | "SIGKILL") => {
    const ended = (await running?.end(signal, deadline)) ?? true
    if (!ended) throw new Error(`${command} on 127.0.0.1:${port} is still there ${deadline} ms after ${signal}`)
  }
  const start = async () => {
    if (await isAlive()) return
    running = await host.run(name, command, args)
    await untilReady(ask, {
      what: `${command} on 127.0.0.1:${port}`,
      deadline,
      isAlive,
      log: () => host.log(name),
      end: () => ends("SIGKILL"),
      say
    })
  }
  const stop = () => ends("SIGTERM")
  return {
    ...program,
    pid: () => running?.pid(),
    isAlive,
    start,
    kill: () => ends("SIGKILL"),
    stop,
    restart: async () => {
      await stop()
      await start()
    },
    log: () => host.log(name)
  }
}

/** The ports of all programs. The HTTP port of each follows its TCP port, as in NSQ's defaults. */
export const portsOf = (instance: Instance, count: number): ReadonlyArray<number> =>
  Array.from({ length: 2 * (count + 1) }, (_, index) => instance.port(index))

const ping = async (url: string, milliseconds: number): Promise<void> => {
  const { ok, status } = await fetch(`${url}ping`, { signal: AbortSignal.timeout(milliseconds) })
  if (!ok) throw new Error(`HTTP ${status}`)
}

interface Options extends Settings {
  readonly count: number
  readonly flags: Flags
}

export interface Made {
  readonly lookupd: Node
  readonly nodes: readonly [Node, ...Array<Node>]
  /** Whether all programs run. */
  readonly isAlive: () => Promise<boolean>
}

export const make = async (instance: Instance, host: Host, options: Options): Promise<Made> => {
  const { count, flags } = options
  const addresses = (port: number) => [
    `--tcp-address=${host.listen}:${port}`,
    `--http-address=${host.listen}:${port + 1}`,
    "--broadcast-address=127.0.0.1"
  ]
  const lookupdPort = instance.port(0)
  const lookupdUrl = `http://127.0.0.1:${lookupdPort + 1}/`
  const lookupd = toNode(
    host,
    {
      name: "lookupd",
      command: "nsqlookupd",
      url: lookupdUrl,
      managementUrl: lookupdUrl,
      port: lookupdPort,
      args: addresses(lookupdPort),
      ask: (milliseconds) => ping(lookupdUrl, milliseconds)
    },
    options
  )
  const own = Object.entries(flags).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`]))
  const makeNode = async (index: number): Promise<Started> => {
    const name = `n${index + 1}`
    const port = instance.port(2 * (index + 1))
    const url = `nsq://127.0.0.1:${port}`
    const args = [
      ...addresses(port),
      // Needed only with a certificate; its usual port would be open to all networks.
      `--https-address=${host.listen}:0`,
      `--lookupd-tcp-address=127.0.0.1:${lookupdPort}`,
      `--data-path=${await host.folder(name)}`,
      // Otherwise two nsqds of one machine would give the same id to different messages.
      `--node-id=${index + 1}`,
      ...own
    ]
    const ask = (milliseconds: number) => identify(url, milliseconds)
    const managementUrl = `http://127.0.0.1:${port + 1}/`
    return toNode(host, { name, command: "nsqd", url, managementUrl, port, args, ask }, options)
  }
  const others = Array.from({ length: count - 1 }, (_, index) => makeNode(index + 1))
  const nodes = await Promise.all([makeNode(0), ...others])
  const isAlive = async () => !(await Promise.all([lookupd, ...nodes].map((each) => each.isAlive()))).includes(false)
  return { lookupd, nodes, isAlive }
}
