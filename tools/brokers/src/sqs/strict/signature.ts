/**
 * Checks the signature of a call, and its region.
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 */
import { createHash, createHmac } from "node:crypto"
import type { IncomingMessage } from "node:http"
import { named, type AwsError } from "./AwsError.ts"

export interface Identity {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly region: string
}

const hash = (text: string | Buffer): string => createHash("sha256").update(text).digest("hex")
const hmac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest()

const shape = /Credential=([^/]+)\/(\d{8})\/([^/]+)\/sqs\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=(\w+)/

/** Returns why AWS rejects the signature; `undefined` if it does not. */
export const refused = (
  { headers, method, url }: IncomingMessage,
  body: Buffer,
  me: Identity
): AwsError | undefined => {
  const [, key, day = "", region = "", names = "", signature] = shape.exec(headers.authorization ?? "") ?? []
  if (key === undefined) return { code: "MissingAuthenticationToken", message: "Request is not signed.", status: 403 }
  if (key !== me.accessKeyId) return named("InvalidClientTokenId")
  if (region !== me.region) {
    return { ...named("SignatureDoesNotMatch"), message: "Credential should be scoped to a valid region." }
  }
  const signed = names.split(";").map(
    (name) =>
      `${name}:${String(headers[name] ?? "")
        .trim()
        .replace(/ +/g, " ")}\n`
  )
  const request = [method, url, "", signed.join(""), names, hash(body)].join("\n")
  const scope = [day, region, "sqs", "aws4_request"]
  const text = ["AWS4-HMAC-SHA256", headers["x-amz-date"], scope.join("/"), hash(request)].join("\n")
  const secret = scope.reduce<string | Buffer>(hmac, `AWS4${me.secretAccessKey}`)
  return hmac(secret, text).toString("hex") === signature ? undefined : named("SignatureDoesNotMatch")
}
