/** The programs of one broker: an nsqlookupd, and each nsqd that reports to it. */
import type { Node } from "../Broker.ts"
import type { Instance } from "../Instance.ts"
import type { Host, Process } from "./Host.ts"
import { awaitNsqd } from "./identify.ts"

/** Flags of nsqd that a test may want to differ, as `{ "max-req-timeout": "3s" }`. https://nsq.io/components/nsqd.html */
export type Flags = { readonly [Flag in FlagName]?: string | number | undefined }

type FlagName =
  | "auth-http-address"
  | "max-body-size"
  | "max-msg-size"
  | "max-msg-timeout"
  | "max-rdy-count"
  | "max-req-timeout"
  | "mem-queue-size"
  | "msg-timeout"
  | "queue-scan-selection-count"
  | "queue-scan-selection-count"
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
  /** Why it does not answer, unless it does in time. */
  readonly answers: (deadline: number, isAlive: () => Promise<boolean>) => Promise<string | undefined>
}

const toNode = (host: Host, { command, args, answers, ...program }: Program, deadline: number): Node => {
  const { name, port } = program
  let running: Process | undefined
  const ends = async (signal: "SIGTERM" | "SIGKILL") => {
    const ended = (await running?.end(signal, deadline)) ?? true
    if (!ended) throw new Error(`${command} on 127.0.0.1:${port} is still there ${deadline} ms after ${signal}`)
  }
  const start = async () => {
    if ((await running?.isAlive()) === true) return
    const started = await host.run(name, command, args)
    running = started
    const failed = await answers(deadline, started.isAlive)
    if (failed === undefined) return
    await ends("SIGKILL")
    throw new Error(`${command} on 127.0.0.1:${port} ${failed}. Its log ends:\n${await host.log(name)}`)
  }
  const stop = () => ends("SIGTERM")
  return {
    ...program,
    pid: () => running?.pid(),
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

/** The ports of all of them. Every program has its HTTP port after its TCP port, as in NSQ's defaults. */
export const portsOf = (instance: Instance, count: number): ReadonlyArray<number> =>
  Array.from({ length: 2 * (count + 1) }, (_, index) => instance.port(index))

const pings = async (url: string, milliseconds: number, isAlive: () => Promise<boolean>) => {
  const deadline = performance.now() + milliseconds
  while (performance.now() < deadline) {
    if (!(await isAlive())) return "ended while it started"
    const response = await fetch(`${url}ping`, { signal: AbortSignal.timeout(5000) }).catch(() => undefined)
    if (response?.ok === true) return undefined
  }
  return `does not answer after ${milliseconds} ms`
}

interface Options {
  readonly count: number
  readonly deadline: number
  readonly flags: Flags
}

export const make = async (instance: Instance, host: Host, { count, deadline, flags }: Options) => {
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
      answers: (milliseconds, isAlive) => pings(lookupdUrl, milliseconds, isAlive)
    },
    deadline
  )
  const own = Object.entries(flags).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`]))
  const nodes = Array.from({ length: count }, async (_, index): Promise<Node> => {
    const name = `n${index + 1}`
    const port = instance.port(2 * (index + 1))
    const url = `nsq://127.0.0.1:${port}`
    const args = [
      ...addresses(port),
      // Only used with a certificate, and open to everybody on its usual port otherwise.
      `--https-address=${host.listen}:0`,
      `--lookupd-tcp-address=127.0.0.1:${lookupdPort}`,
      `--data-path=${await host.folder(name)}`,
      // Two of one machine would else give the same id to different messages.
      `--node-id=${index + 1}`,
      ...own
    ]
    const answers = (milliseconds: number, isAlive: () => Promise<boolean>) => awaitNsqd(url, milliseconds, isAlive)
    const managementUrl = `http://127.0.0.1:${port + 1}/`
    return toNode(host, { name, command: "nsqd", url, managementUrl, port, args, answers }, deadline)
  })
  return { lookupd, nodes: await Promise.all(nodes) }
}
