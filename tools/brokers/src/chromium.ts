/** Chromium, by which tests see pages as people do. */
import { existsSync } from "node:fs"
import { delimiter, join } from "node:path"
import { Unavailable } from "./Broker.ts"
import { install } from "./debian.ts"

/** Its names on the `PATH`. */
const names: ReadonlyArray<string> = ["chromium", "chromium-browser", "google-chrome"]

const onMac = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"

/** Where Debian's package has it. */
const onDebian = "/usr/bin/chromium"

const found = (): string | undefined => {
  const folders = (process.env["PATH"] ?? "").split(delimiter)
  const files = names.flatMap((name) => folders.map((folder) => join(folder, name)))
  return [...files, onMac].find((file) => existsSync(file))
}

/**
 * The file of the program: the one that `REQUEUE_CHROMIUM` names, else the machine's own, else that of Debian's package, which
 * is installed for root on Debian (300 MB, once).
 *
 * @throws Unavailable where none can be had
 */
export const chromium = async (say: (line: string) => void = console.error): Promise<string> => {
  if (process.env["REQUEUE_NO_SERVERS"] !== undefined) throw new Unavailable("nothing is started here")
  const named = process.env["REQUEUE_CHROMIUM"]
  if (named !== undefined) {
    if (existsSync(named)) return named
    throw new Unavailable(`REQUEUE_CHROMIUM: there is no ${named}`)
  }
  const own = found()
  if (own !== undefined) return own
  try {
    await install("chromium", say)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new Unavailable(`there is no Chromium (${why}). Install chromium, or name one in REQUEUE_CHROMIUM`)
  }
  return onDebian
}
