/** Chromium, which tests use to see pages as people do. */
import { existsSync } from "node:fs"
import { delimiter, join } from "node:path"
import { Unavailable } from "./Broker.ts"
import { install } from "./debian.ts"

/** Its names on the `PATH`. */
const names: ReadonlyArray<string> = ["chromium", "chromium-browser", "google-chrome"]

const onMac = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"

/** Its path in Debian's package. */
const onDebian = "/usr/bin/chromium"

const found = (): string | undefined => {
  const folders = (process.env["PATH"] ?? "").split(delimiter)
  const files = names.flatMap((name) => folders.map((folder) => join(folder, name)))
  return [...files, onMac].find((file) => existsSync(file))
}

/**
 * The program's file: `REQUEUE_CHROMIUM`, else the installed one, else Debian's package, which root installs on Debian (300 MB,
 * once).
 *
 * @throws Unavailable if there is none
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
