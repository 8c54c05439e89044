/** A server of PostgreSQL on this machine. */
import { execFile } from "node:child_process"
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { promisify } from "node:util"
import { Unavailable, type Node } from "../Broker.ts"
import type { Instance } from "../Instance.ts"
import * as processes from "../processes.ts"
import { untilReady } from "../ready.ts"
import type { Installation } from "./installation.ts"

const execute = promisify(execFile)

/** ServerSettings of the server, such as `{ max_connections: "20" }`. */
export type ServerSettings = { readonly [name: string]: string }

interface Options {
  readonly password: string
  readonly parameters: ServerSettings
  readonly deadline: number
  readonly say: (line: string) => void
}

const output = "postgres.log"

/** The superuser. */
const user = "requeue"

/** PostgreSQL and pgbouncer refuse to run as root. In a user namespace, root's processes have another user id, and root's files. */
export const asOther = (command: string, args: ReadonlyArray<string>): readonly [string, ReadonlyArray<string>] => {
  if (process.getuid?.() !== 0) return [command, args]
  if (process.platform !== "linux") throw new Unavailable("PostgreSQL does not run as root: use another user")
  return ["unshare", ["--user", command, ...args]]
}

/** Succeeds once the server asks for a login; before, it answers with an error. https://www.postgresql.org/docs/current/protocol-flow.html */
export const handshake = (url: string, milliseconds = 5000): Promise<void> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const socket = connect({ host: hostname, port: Number(port || 5432), timeout: milliseconds })
    const fail = (why: string) => {
      socket.destroy()
      reject(new Error(why))
    }
    socket.on("connect", () => {
      const parameters = Buffer.from(`user\0${user}\0database\0postgres\0\0`)
      const head = Buffer.alloc(8)
      head.writeInt32BE(head.length + parameters.length, 0)
      head.writeInt32BE(196_608, 4)
      socket.write(Buffer.concat([head, parameters]))
    })
    socket.on("data", (bytes) => {
      if (bytes[0] !== "R".charCodeAt(0)) return fail(bytes.toString("latin1").replaceAll(/[^ -~]+/g, " "))
      socket.destroy()
      resolve()
    })
    socket.on("timeout", () => fail("no answer"))
    socket.on("error", (cause) => fail(cause.message))
    socket.on("close", () => fail("the connection was closed"))
  })

/** The processes that the server has started. They end after it, and until then it cannot start again. */
const childrenOf = (pid: number): ReadonlyArray<processes.Identity> => {
  try {
    const pids = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean)
    return pids.flatMap((child) => processes.identify(Number(child)) ?? [])
  } catch {
    return []
  }
}

/** Long, because its methods share what runs: prepares a server, which `start` starts. */
export const make = async (
  instance: Instance,
  { folder, version }: Installation,
  { deadline, parameters, password, say }: Options
): Promise<Node> => {
  const port = instance.port(0)
  const url = `postgres://${user}:${password}@127.0.0.1:${port}/postgres`
  const data = join(instance.folder, "data")
  const secret = join(instance.folder, "password")
  writeFileSync(secret, password, { mode: 0o600 })
  await execute(
    ...asOther(join(folder, "initdb"), [
      "--no-sync",
      "-D",
      data,
      "-U",
      user,
      "--pwfile",
      secret,
      "-A",
      "scram-sha-256",
      "-E",
      "UTF8",
      "--locale",
      "C"
    ])
  )
  const settings: ServerSettings = {
    listen_addresses: "127.0.0.1",
    port: String(port),
    unix_socket_directories: "",
    max_connections: "300",
    ...parameters
  }
  const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`])
  const tail = () => readFileSync(join(instance.folder, output), "utf8").trimEnd().split("\n").slice(-15).join("\n")
  let running: processes.Identity | undefined
  const isRunning = () => running !== undefined && processes.isAlive(running)
  const start = async () => {
    if (isRunning()) return
    const started = instance.spawn(...asOther(join(folder, "postgres"), ["-D", data, ...flags]), {
      env: { PATH: process.env["PATH"] ?? "" },
      output
    })
    running = started
    await untilReady((milliseconds) => handshake(url, milliseconds), {
      what: `PostgreSQL ${version} on 127.0.0.1:${port}`,
      deadline,
      isAlive: () => processes.isAlive(started),
      log: tail,
      end: () => processes.kill([started]),
      say
    })
  }
  const stop = async () => {
    // Its "fast" shutdown: it does not wait for clients.
    if (running === undefined || !processes.signal(running, "SIGINT")) return
    if (await processes.ended([running], deadline)) return
    throw new Error(`PostgreSQL on 127.0.0.1:${port} is still there ${deadline} ms after SIGINT`)
  }
  return {
    name: "postgres",
    url,
    managementUrl: undefined,
    port,
    pid: () => (isRunning() ? running?.pid : undefined),
    start,
    kill: async () => {
      if (running === undefined) return
      await processes.kill([running, ...childrenOf(running.pid)])
      // The next server would take a process that has ended, and is still listed, for a running one.
      rmSync(join(data, "postmaster.pid"), { force: true })
    },
    stop,
    restart: async () => {
      await stop()
      await start()
    },
    log: async () => tail()
  }
}
