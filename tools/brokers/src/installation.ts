/** RabbitMQ installations on this machine: the machine's own, and those in Debian trees. */
import { accessSync, constants, realpathSync } from "node:fs"
import { delimiter, dirname, join } from "node:path"

export interface Release {
  readonly version: string
}

export interface Installation extends Release {
  /** The folder of the scripts, as seen from inside the root. */
  readonly scripts: string
  /** The tree to change root to; `undefined` for the machine's own. */
  readonly root: string | undefined
}

const isExecutable = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Reads the version from the path, such as /usr/lib/rabbitmq/lib/rabbitmq_server-3.10.8/sbin/rabbitmq-server. */
const inFolder = (folder: string, root: string | undefined): Installation | undefined => {
  const server = join(root ?? "/", folder, "rabbitmq-server")
  if (!isExecutable(server)) return undefined
  const version = /rabbitmq(?:_server)?[-/](\d+\.\d+\.\d+)/.exec(realpathSync(server))?.[1]
  return version === undefined ? undefined : { version, scripts: folder, root }
}

// Debian's folder comes first: the program on its PATH is a wrapper that changes the user and the folder.
const debian = "/usr/lib/rabbitmq/bin"

export const ofSystem = (): Installation | undefined => {
  const path = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "")
  for (const folder of [debian, ...path]) {
    const found = inFolder(folder, undefined)
    if (found === undefined) continue
    // The other scripts are next to the file that a link leads to.
    const own = dirname(realpathSync(join(folder, "rabbitmq-server")))
    return folder === debian ? found : { ...found, scripts: own }
  }
  return undefined
}

export const ofTree = (root: string): Installation | undefined => inFolder(debian, root)

/** Whether `4.3.6` belongs to the release `4.3`. */
export const isOf = (version: string, release: string): boolean => `${version}.`.startsWith(`${release}.`)

const parts = (version: string) => version.split(".").map(Number)

/** Compares installations: the newest comes first. */
export const byAge = (a: Release, b: Release): number => {
  const [left, right] = [parts(a.version), parts(b.version)]
  const at = left.findIndex((part, index) => part !== right[index])
  return at < 0 ? 0 : (right[at] ?? 0) - (left[at] ?? 0)
}
