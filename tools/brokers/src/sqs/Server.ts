/** Servers that speak SQS and run here as a process. They keep nothing when they end. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { SqsNode } from "./SqsNode.ts"
import type { Instance } from "../Instance.ts"
import * as processes from "../processes.ts"
import { untilReady } from "../ready.ts"
import { local } from "./address.ts"
import { handshake } from "./handshake.ts"

/** How to run a server. */
export interface Server {
  readonly name: string
  readonly version: string
  /** Its origin, for messages. */
  readonly source: string
  readonly command: string
  readonly args: (port: number, folder: string) => ReadonlyArray<string>
  /** Moves the server's clock forward, if it has its own. */
  readonly forward?: (port: number, milliseconds: number) => Promise<void>
}

interface Options {
  readonly secret: string
  readonly deadline: number
  readonly say: (line: string) => void
}

const output = "server.log"

export const make = (instance: Instance, server: Server, { secret, deadline, say }: Options): SqsNode => {
  const port = instance.port(1)
  const url = local(port, secret)
  const tail = () => readFileSync(join(instance.folder, output), "utf8").trimEnd().split("\n").slice(-15).join("\n")
  let running: processes.Identity | undefined
  const isRunning = () => running !== undefined && processes.isAlive(running)
  const start = async () => {
    if (isRunning()) return
    const started = instance.spawn(server.command, server.args(port, instance.folder), {
      env: { PATH: process.env["PATH"] ?? "", HOME: instance.folder },
      output
    })
    running = started
    await untilReady((milliseconds) => handshake(url, milliseconds), {
      what: `${server.name} ${server.version} on 127.0.0.1:${port}`,
      deadline,
      isAlive: () => processes.isAlive(started),
      log: tail,
      end: () => processes.kill([started]),
      say
    })
  }
  const stop = async () => {
    if (running === undefined || !processes.signal(running, "SIGTERM")) return
    if (await processes.ended([running], deadline)) return
    throw new Error(`${server.name} on 127.0.0.1:${port} is still there ${deadline} ms after SIGTERM`)
  }
  return {
    name: server.name,
    url,
    managementUrl: undefined,
    port,
    pid: () => (isRunning() ? running?.pid : undefined),
    start,
    kill: async () => {
      if (running !== undefined) await processes.kill([running])
    },
    stop,
    restart: async () => {
      await stop()
      await start()
    },
    log: async () => tail(),
    forward: server.forward === undefined ? undefined : (milliseconds) => server.forward!(port, milliseconds)
  }
}
