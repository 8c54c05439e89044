/** Certificates for tests, made by openssl. */
import { execFileSync } from "node:child_process"
import { isIP } from "node:net"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { codeOf } from "./errorCode.ts"

/** A certificate and its private key, as PEM texts. */
export interface Certificate {
  readonly cert: string
  readonly key: string
}

const openssl = (folder: string, args: ReadonlyArray<string>): void => {
  try {
    execFileSync("openssl", args, { cwd: folder, stdio: "pipe" })
  } catch (cause) {
    if (codeOf(cause) !== "ENOENT") throw cause
    throw new Error("Certificates are made by openssl, which is not here: install it, or put it on the PATH", { cause })
  }
}

/** A certificate for this name or IP address, valid for two days; signed by an authority, or as a new authority. */
export const certificate = (name: string, by?: Certificate): Certificate => {
  const folder = mkdtempSync(join(tmpdir(), "requeue-certificate-"))
  try {
    const subject = ["-subj", `/CN=${name}`, "-addext", `subjectAltName=${isIP(name) === 0 ? "DNS" : "IP"}:${name}`]
    const request = ["-newkey", "rsa:2048", "-nodes", ...subject, "-keyout", "key.pem"]
    if (by === undefined) openssl(folder, ["req", "-x509", ...request, "-days", "2", "-out", "cert.pem"])
    else {
      writeFileSync(join(folder, "by.pem"), by.cert)
      writeFileSync(join(folder, "by.key"), by.key, { mode: 0o600 })
      openssl(folder, ["req", ...request, "-out", "request.pem"])
      const signed = ["-CA", "by.pem", "-CAkey", "by.key", "-CAcreateserial", "-copy_extensions", "copy"]
      openssl(folder, ["x509", "-req", "-in", "request.pem", ...signed, "-days", "2", "-out", "cert.pem"])
    }
    const read = (file: string): string => readFileSync(join(folder, file), "utf8")
    return { cert: read("cert.pem"), key: read("key.pem") }
  } finally {
    rmSync(folder, { recursive: true })
  }
}
