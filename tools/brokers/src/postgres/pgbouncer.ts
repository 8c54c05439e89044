/** `pgbouncer`, a pooler, in transaction mode: https://www.pgbouncer.org/config.html */
import { execFile } from "node:child_process"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { Unavailable, type Broker } from "../Broker.ts"
import { hasCommand, installOnce } from "../installOnce.ts"
import * as Instance from "../Instance.ts"
import { untilReady } from "../ready.ts"
import * as processes from "../processes.ts"
import { asOther, handshake } from "./node.ts"

const execute = promisify(execFile)

/** Milliseconds that the download and the start may take. */
const timeout = 300_000

/** Debian's packages of the pooler and of libraries that few machines have. */
const packages = ["pgbouncer", "libc-ares2", "libevent-2.1-7"]

interface Program {
  readonly command: string
  readonly environment: Readonly<Record<string, string>>
}

/** The command: the machine's own, else that of Debian's package, which is unpacked and not installed. */
const program = async (say: (line: string) => void): Promise<Program> => {
  for (const command of ["pgbouncer", "/usr/sbin/pgbouncer"]) {
    const isHere = await hasCommand(command, "--version").then(
      () => true,
      () => false
    )
    if (isHere) return { command, environment: {} }
  }
  await hasCommand("apt-get", "--version")
  const folder = await installOnce("pgbouncer", "1 MB from Debian", say, async (partial) => {
    try {
      await execute("apt-get", ["download", ...packages], { cwd: partial, timeout })
      for (const file of readdirSync(partial)) await execute("dpkg-deb", ["-x", file, "."], { cwd: partial })
    } catch (cause) {
      throw new Unavailable(`Debian's package pgbouncer cannot be had: ${String(cause).split("\n", 1)[0]}`)
    }
  })
  const libraries = join(folder, "usr", "lib")
  const triplet = readdirSync(libraries).find((name) => name.includes("-linux-"))
  const environment = triplet === undefined ? {} : { LD_LIBRARY_PATH: join(libraries, triplet) }
  return { command: join(folder, "usr", "sbin", "pgbouncer"), environment }
}

/** A pooler in front of a server. */
export interface Pooler {
  readonly url: string
  readonly port: number
  readonly dispose: () => Promise<void>
}

/**
 * Starts a pooler with `size` connections to the server.
 *
 * @throws Unavailable if there is no program
 */
export const pgbouncer = async (
  server: Broker,
  size: number,
  say: (line: string) => void = console.error
): Promise<Pooler> => {
  const { command, environment } = await program(say)
  const { hostname, password, pathname, port: target, username } = new URL(server.url)
  const instance = await Instance.make()
  const port = instance.port(0)
  const file = join(instance.folder, "pgbouncer.ini")
  writeFileSync(
    file,
    `[databases]
${pathname.slice(1)} = host=${hostname} port=${target} user=${username} password=${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${size}
max_client_conn = 1000
`,
    { mode: 0o600 }
  )
  const log = "pgbouncer.log"
  const started = instance.spawn(...asOther(command, [file]), {
    env: { PATH: process.env["PATH"] ?? "", ...environment },
    output: log
  })
  const url = `postgres://${username}:pooled@127.0.0.1:${port}${pathname}`
  await untilReady((milliseconds) => handshake(url, milliseconds), {
    what: `pgbouncer on 127.0.0.1:${port}`,
    deadline: timeout,
    isAlive: () => processes.isAlive(started),
    log: () => readFileSync(join(instance.folder, log), "utf8").trimEnd().split("\n").slice(-15).join("\n"),
    end: instance.dispose,
    say
  })
  return { url, port, dispose: instance.dispose }
}
