/** The URL of a letter's trace in a tracing tool, from the W3C's `traceparent`: https://www.w3.org/TR/trace-context/ */

/** Returns the URL of a trace; `undefined` if the headers name no trace. */
export type TraceUrl = (headers: Readonly<Record<string, string>>) => string | undefined

const parent = /^[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-[\da-f]{2}(?:-|$)/

const fill = (template: string, trace: string, span: string): string =>
  template.replaceAll("{traceId}", encodeURIComponent(trace)).replaceAll("{spanId}", encodeURIComponent(span))

const parsed = (text: string): URL | undefined => (URL.canParse(text) ? new URL(text) : undefined)

/**
 * Whether a text is a template of trace URLs: by HTTP or HTTPS, without a password, with `{traceId}` after the host.
 */
export const isTemplate = (text: string): boolean => {
  const [one, other] = ["a", "b"].map((id) => parsed(fill(text, id.repeat(32), id.repeat(16))))
  return (
    text.includes("{traceId}") &&
    one !== undefined &&
    other !== undefined &&
    /^https?:$/.test(one.protocol) &&
    one.origin === other.origin &&
    one.username + one.password === "" &&
    // A placeholder that is left has no value.
    !/[{}]/.test(fill(text, "", ""))
  )
}

/** Returns a function that fills in a template. */
export const make =
  (template: string | undefined): TraceUrl =>
  (headers) => {
    const name = Object.keys(headers).find((each) => each.toLowerCase() === "traceparent")
    const [, trace, span] = parent.exec((name === undefined ? undefined : headers[name]) ?? "") ?? []
    const isKnown = trace !== undefined && span !== undefined && !/^0+$/.test(trace)
    return template === undefined || !isKnown ? undefined : fill(template, trace, span)
  }
