/** The files of a RabbitMQ node that is a process of this machine: its configuration, plugins and certificates. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Instance } from "./Instance.ts"
import type { Certificates } from "./RabbitMqNode.ts"

/** Settings that all nodes of an instance share. */
export interface Settings {
  /** The number of nodes. */
  readonly count: number
  readonly password: string
  readonly tls: Certificates | undefined
  readonly tokenKey: string | undefined
}

/** The TLS port of a node: the ports before it are the port mapper's and three for each node. */
export const tlsPort = (instance: Instance, index: number, { count }: Settings): number =>
  instance.port(3 * count + 1 + index)

/** Where the node sees its certificates. Clients need none, unless they log in with one, as the user of that name. */
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

const configuration = (instance: Instance, index: number, settings: Settings, folder: string): string =>
  [
    `listeners.tcp.1 = 127.0.0.1:${instance.port(3 * index + 1)}`,
    `management.tcp.ip = 127.0.0.1`,
    `management.tcp.port = ${instance.port(3 * index + 2)}`,
    "default_user = requeue",
    `default_pass = ${settings.password}`,
    "log.console = false",
    // Keeps the counts of the management API current.
    "collect_statistics_interval = 250",
    ...(settings.tls === undefined ? [] : tlsConfiguration(folder, tlsPort(instance, index, settings))),
    ...(settings.tokenKey === undefined ? [] : tokenConfiguration(folder)),
    ...(settings.count === 1 ? [] : ["cluster_formation.peer_discovery_backend = classic_config"]),
    ...Array.from({ length: settings.count === 1 ? 0 : settings.count }, (_, peer) => {
      return `cluster_formation.classic_config.nodes.${peer + 1} = n${peer + 1}@localhost`
    }),
    ""
  ].join("\n")

// While a queue has no leader, a starting node cannot publish dead letters to it. It tries again after this time; the default is
// three minutes.
const advanced = "[{rabbit, [{dead_letter_worker_publisher_confirm_timeout, 5000}]}].\n"

/** Writes the files of a node, and returns the environment that names them. */
export const prepare = (
  instance: Instance,
  { env, home }: { readonly env: Readonly<Record<string, string>>; readonly home: string },
  settings: Settings,
  index: number
): Readonly<Record<string, string>> => {
  const name = `n${index + 1}`
  const folder = join(instance.folder, name)
  const own = `${home}/${name}`
  mkdirSync(folder)
  writeFileSync(join(folder, "rabbitmq.conf"), configuration(instance, index, settings, own))
  writeFileSync(join(folder, "advanced.config"), advanced)
  const plugins = [
    "rabbitmq_management",
    ...(settings.tls === undefined ? [] : ["rabbitmq_auth_mechanism_ssl"]),
    ...(settings.tokenKey === undefined ? [] : ["rabbitmq_auth_backend_oauth2"])
  ]
  writeFileSync(join(folder, "enabled_plugins"), `[${plugins.join(",")}].\n`)
  for (const [kind, pem] of Object.entries(settings.tls ?? {})) writeFileSync(join(folder, `${kind}.pem`), pem)
  if (settings.tokenKey !== undefined) writeFileSync(join(folder, "token.pem"), settings.tokenKey)
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
    // With it the script becomes the Erlang VM instead of waiting for it, so the pid is the VM's.
    RABBITMQ_ALLOW_INPUT: "1",
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: "-noinput -kernel inet_dist_use_interface {127,0,0,1}"
  }
}
