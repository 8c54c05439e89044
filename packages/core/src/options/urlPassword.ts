/** Passwords of URLs in texts that errors show. */

/** A password that is not percent-encoded may contain anything; it ends at the last @. */
const account = /^(\W*\w[\w+.-]*:\/\/[^:]*:)(.*)@/s

/** Returns the password of a text that is a URL. */
export const passwordOf = (text: string): string | undefined => account.exec(text)?.[2]

/** Replaces the password of a URL by `***`, for errors. */
export const withoutPassword = (text: string): string => text.replace(account, "$1***@")
