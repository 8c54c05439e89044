/** RabbitMQ nodes that are processes of this machine. */
import { execFile } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { promisify } from "node:util"
import type { Instance } from "./Instance.ts"
import type { Installation } from "./installation.ts"
import type { Certificates, RabbitMqNode } from "./RabbitMqNode.ts"
import { handshake } from "./amqp.ts"
import * as processes from "./processes.ts"
import { untilReady } from "./ready.ts"

interface Options {
  readonly count: number
  readonly password: string
  readonly tls: Certificates | undefined
  readonly tokenKey: string | undefined
  readonly deadline: number
  readonly say: (line: string) => void
}

const run = promisify(execFile)

// The instance's folder appears here inside a tree. Only the processes of the node see the mounts, which end with them:
// nothing has to be unmounted, whatever is killed.
const mountPoint = "/mnt"
const enter = `set -e
mount --bind /proc "$1/proc"
mount --rbind /dev "$1/dev"
mount --bind "$2" "$1${mountPoint}"
root=$1
shift 2
exec chroot "$root" "$@"`

/** Port of a node with TLS: those before it are the port mapper's and three for each node. */
const tlsPort = (instance: Instance, index: number, { count }: Options): number => instance.port(3 * count + 1 + index)

/** Where the node sees its certificates. Clients need none, unless they log in by it: as the user that it is made for. */
const tlsConfiguration = (folder: string, port: number): ReadonlyArray<string> => [
  `listeners.ssl.1 = 127.0.0.1:${port}`,
  `ssl_options.cacertfile = ${folder}/ca.pem`,
  `ssl_options.certfile = ${folder}/cert.pem`,
  `ssl_options.keyfile = ${folder}/key.pem`,
  "ssl_options.verify = verify_peer",
  "ssl_options.fail_if_no_peer_cert = false",
  "ssl_cert_login_from = common_name",
  "auth_mechanisms.1 = PLAIN",
  "auth_mechanisms.2 = EXTERNAL"
]

/** Tokens are for the audience `requeue`. The server's own users may log in as well. */
const tokenConfiguration = (folder: string): ReadonlyArray<string> => [
  "auth_backends.1 = rabbit_auth_backend_oauth2",
  "auth_backends.2 = rabbit_auth_backend_internal",
  "auth_oauth2.resource_server_id = requeue",
  "auth_oauth2.default_key = tests",
  `auth_oauth2.signing_keys.tests = ${folder}/token.pem`,
  "auth_oauth2.algorithms.1 = RS256"
]

const configuration = (instance: Instance, index: number, options: Options, folder: string): string =>
  [
    `listeners.tcp.1 = 127.0.0.1:${instance.port(3 * index + 1)}`,
    `management.tcp.ip = 127.0.0.1`,
    `management.tcp.port = ${instance.port(3 * index + 2)}`,
    "default_user = requeue",
    `default_pass = ${options.password}`,
    "log.console = false",
    // Keeps the counts of the management API current.
    "collect_statistics_interval = 250",
    ...(options.tls === undefined ? [] : tlsConfiguration(folder, tlsPort(instance, index, options))),
    ...(options.tokenKey === undefined ? [] : tokenConfiguration(folder)),
    ...(options.count === 1 ? [] : ["cluster_formation.peer_discovery_backend = classic_config"]),
    ...Array.from({ length: options.count === 1 ? 0 : options.count }, (_, peer) => {
      return `cluster_formation.classic_config.nodes.${peer + 1} = n${peer + 1}@localhost`
    }),
    ""
  ].join("\n")

// While a queue has no leader, a node that starts cannot publish dead letters to it. It tries again after this time; the
// default is three minutes.
const advanced = "[{rabbit, [{dead_letter_worker_publisher_confirm_timeout, 5000}]}].\n"

const tail = (folder: string): string => {
  const files = readdirSync(folder).filter((name) => name.endsWith(".log"))
  const lines = files.flatMap((name) => readFileSync(join(folder, name), "utf8").trimEnd().split("\n").slice(-15))
  return lines.join("\n")
}

const knock = async (port: number): Promise<void> => {
  const socket = connect(port, "127.0.0.1")
  await once(socket, "connect").finally(() => socket.destroy())
}

/** The commands of an installation, run for one instance. */
const makeCommands = (instance: Instance, { root, scripts }: Installation) => {
  const home = root === undefined ? instance.folder : mountPoint
  return {
    scripts,
    /** The instance's folder, as commands see it. */
    home,
    /** Answers the command line that runs a command inside the root. */
    inside: (command: string, args: ReadonlyArray<string>): [string, Array<string>] =>
      root === undefined
        ? [command, [...args]]
        : [
            "unshare",
            ["--mount", "--propagation", "private", "sh", "-c", enter, "sh", root, instance.folder, command, ...args]
          ],
    env: {
      PATH: root === undefined ? (process.env["PATH"] ?? "") : "/usr/sbin:/usr/bin:/sbin:/bin",
      HOME: home,
      LANG: "C.UTF-8",
      // One port mapper for all nodes of the instance, and for no others.
      ERL_EPMD_PORT: String(instance.port(0)),
      ERL_EPMD_ADDRESS: "127.0.0.1"
    }
  }
}

type Commands = ReturnType<typeof makeCommands>

/** Makes a function that starts the instance's Erlang port mapper, unless it runs. */
const makeEpmd = (instance: Instance, { env, inside }: Commands, options: Options) => {
  let epmd: { readonly process: processes.Identity; readonly ready: Promise<void> } | undefined
  // Started in the foreground: one that a node starts is a daemon with an unknown pid.
  return (): Promise<void> => {
    if (epmd !== undefined && processes.isAlive(epmd.process)) return epmd.ready
    const process = instance.spawn(...inside("epmd", []), { env, output: "epmd.log" })
    const port = instance.port(0)
    const ready = untilReady(() => knock(port), {
      ...options,
      what: `epmd on 127.0.0.1:${port}`,
      isAlive: () => processes.isAlive(process),
      log: () => tail(instance.folder),
      end: () => processes.kill([process])
    })
    epmd = { process, ready }
    return ready
  }
}

/** Writes the files of a node, and answers the environment that names them. */
const prepare = (instance: Instance, { env, home }: Commands, options: Options, index: number) => {
  const name = `n${index + 1}`
  const folder = join(instance.folder, name)
  const own = `${home}/${name}`
  mkdirSync(folder)
  writeFileSync(join(folder, "rabbitmq.conf"), configuration(instance, index, options, own))
  writeFileSync(join(folder, "advanced.config"), advanced)
  const plugins = [
    "rabbitmq_management",
    ...(options.tls === undefined ? [] : ["rabbitmq_auth_mechanism_ssl"]),
    ...(options.tokenKey === undefined ? [] : ["rabbitmq_auth_backend_oauth2"])
  ]
  writeFileSync(join(folder, "enabled_plugins"), `[${plugins.join(",")}].\n`)
  for (const [kind, pem] of Object.entries(options.tls ?? {})) writeFileSync(join(folder, `${kind}.pem`), pem)
  if (options.tokenKey !== undefined) writeFileSync(join(folder, "token.pem"), options.tokenKey)
  return {
    ...env,
    RABBITMQ_NODENAME: `${name}@localhost`,
    RABBITMQ_DIST_PORT: String(instance.port(3 * index + 3)),
    RABBITMQ_CONF_ENV_FILE: `${home}/env.conf`,
    RABBITMQ_CONFIG_FILE: `${own}/rabbitmq.conf`,
    RABBITMQ_ADVANCED_CONFIG_FILE: `${own}/advanced.config`,
    RABBITMQ_ENABLED_PLUGINS_FILE: `${own}/enabled_plugins`,
    RABBITMQ_MNESIA_BASE: `${own}/data`,
    RABBITMQ_LOGS: `${own}/server.log`,
    // With it the script becomes the Erlang VM instead of waiting for it, so that the pid is the VM's.
    RABBITMQ_ALLOW_INPUT: "1",
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: "-noinput -kernel inet_dist_use_interface {127,0,0,1}"
  }
}

/** Makes the nodes of an instance: one, or a cluster. None of them is started yet. */
export const make = (
  instance: Instance,
  installation: Installation,
  options: Options
): readonly [RabbitMqNode, ...Array<RabbitMqNode>] => {
  const commands = makeCommands(instance, installation)
  const { inside, scripts } = commands
  writeFileSync(join(instance.folder, ".erlang.cookie"), randomBytes(16).toString("hex"), { mode: 0o400 })
  // Takes the place of the machine's own file, which may contain anything.
  writeFileSync(join(instance.folder, "env.conf"), "")
  const startEpmd = makeEpmd(instance, commands, options)

  const makeNode = (index: number): RabbitMqNode => {
    const name = `n${index + 1}`
    const port = instance.port(3 * index + 1)
    const url = `amqp://requeue:${options.password}@127.0.0.1:${port}/`
    const env = prepare(instance, commands, options, index)
    const log = () => tail(join(instance.folder, name))

    let vm: processes.Identity | undefined
    const isRunning = () => vm !== undefined && processes.isAlive(vm)
    const start = async () => {
      if (isRunning()) return
      await startEpmd()
      const started = instance.spawn(...inside(`${scripts}/rabbitmq-server`, []), { env, output: `${name}/output.log` })
      vm = started
      await untilReady((milliseconds) => handshake(url, milliseconds), {
        ...options,
        what: `RabbitMQ ${installation.version} on 127.0.0.1:${port}`,
        isAlive: () => processes.isAlive(started),
        log,
        end: () => processes.kill([started])
      })
    }
    const stop = async () => {
      if (vm === undefined || !processes.signal(vm, "SIGTERM")) return
      if (await processes.ended([vm], options.deadline)) return
      throw new Error(`RabbitMQ on 127.0.0.1:${port} is still there ${options.deadline} ms after SIGTERM`)
    }
    return {
      name,
      url,
      port,
      tlsUrl: options.tls === undefined ? undefined : `amqps://127.0.0.1:${tlsPort(instance, index, options)}/`,
      managementUrl: `http://requeue:${options.password}@127.0.0.1:${port + 1}/`,
      pid: () => (isRunning() ? vm?.pid : undefined),
      start,
      kill: async () => {
        if (vm !== undefined) await processes.kill([vm])
      },
      stop,
      restart: async () => {
        await stop()
        await start()
      },
      log: async () => log(),
      ctl: async (...args) => {
        const { stdout } = await run(...inside(`${scripts}/rabbitmqctl`, args), { env })
        return stdout
      }
    }
  }
  return [makeNode(0), ...Array.from({ length: options.count - 1 }, (_, index) => makeNode(index + 1))]
}
