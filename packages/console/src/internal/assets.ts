/** The stylesheet, script and icon. Their names have a hash of their content, so browsers can cache them. */
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"

/** A static file. */
export interface Asset {
  readonly name: string
  readonly type: string
  readonly body: Uint8Array<ArrayBuffer>
}

const read = (file: string, type: string): Asset => {
  const body = Uint8Array.from(readFileSync(new URL(`../../assets/${file}`, import.meta.url)))
  const hash = createHash("sha256").update(body).digest("hex").slice(0, 12)
  return { name: file.replace(".", `-${hash}.`), type: `${type}; charset=utf-8`, body }
}

/** The files of this package. */
export type Assets = Readonly<Record<"icon" | "script" | "style", Asset>>

/** Reads the files of this package. */
export const make = (): Assets => ({
  style: read("console.css", "text/css"),
  script: read("console.js", "text/javascript"),
  icon: read("console.svg", "image/svg+xml")
})
