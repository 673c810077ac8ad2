import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isSameText } from '../core/kit/same-text.ts'
import type { PageAnswer, PageHandler } from './page.ts'

export { createPageHandler, type PageHandler } from './page.ts'

interface GuardOptions {
  /** Called when the token has opened the session. */
  readonly onOpen?: () => void
  /** Called once, when a second browser sends the token: the session then ends. */
  readonly onReuse?: () => void
}

/** Name of the session cookie. A browser sends a cookie to every port of its host, so only the path of the cookie keeps it from other servers. */
const cookie = 'hikidashi-ui'

const secret = (): string => randomBytes(32).toString('base64url')

/**
 * Makes the MCP endpoint beside a page available to the browser that opens a session with a one-time token. The browser sends the token
 * once, in a header of a POST, so the token is never in a request line, a referrer or a log. The session is a cookie that scripts cannot
 * read and that browsers do not send for requests of other sites. If a second browser sends the token, the session ends, because nobody
 * knows who was first (RFC 6749, section 4.1.2, does the same for authorization codes), and answers 401 say `error="reused"`. The browser
 * that has the session may send the token again: the answer then has the header `Hikidashi-Session: continued`.
 */
export function createGuardedPage({ onOpen, onReuse }: GuardOptions = {}) {
  const base = `/${randomBytes(16).toString('base64url')}/`
  const token = secret()
  let session: string | undefined
  let isUsed = false
  let isReused = false
  const refusal = () => (isReused ? reused : shutOut)

  const open = (request: IncomingMessage): PageAnswer => {
    if (request.method !== 'POST')
      return { status: 405, headers: { Allow: 'POST' }, message: 'The HTTP method is not allowed at this path.' }
    if (!isSameText(/^Bearer (\S+)$/i.exec(request.headers.authorization ?? '')?.[1], token)) return refusal()
    if (isOpen(request)) return { ...noContent, headers: { ...noContent.headers, 'Hikidashi-Session': 'continued' } }
    if (isUsed) {
      session = undefined
      if (!isReused) onReuse?.()
      isReused = true
      return refusal()
    }
    isUsed = true
    session = secret()
    onOpen?.()
    const set = `${cookie}=${session}; Path=${base}; HttpOnly; SameSite=Strict`
    return { ...noContent, headers: { ...noContent.headers, 'Set-Cookie': set } }
  }
  const isOpen = (request: IncomingMessage): boolean =>
    cookiesOf(request).some((value) => session !== undefined && isSameText(value, session))

  return {
    /** The path of the MCP endpoint. Its folder is unguessable, so the browser sends the cookie to no other server of this machine. */
    path: `${base}mcp`,
    /** Token at the end of the address of the page, after `#token=`. It opens one session. */
    token,
    /** Wraps the handler of the page: exchanges the token for a session, serves the page, and refuses other requests without a session. */
    guard:
      (page: PageHandler): PageHandler =>
      async (request) => {
        const [path] = (request.url ?? '').split('?', 1)
        if (path === `${base}session`) return open(request)
        return (await page(request)) ?? (isOpen(request) ? undefined : refusal())
      },
  }
}

const noContent = { status: 204, headers: { 'Cache-Control': 'no-store' }, body: new Uint8Array() } as const

const shutOut = {
  status: 401,
  headers: { 'WWW-Authenticate': 'Session realm="hikidashi ui"' },
  message:
    'Open the address that "hikidashi ui" has printed. An address works once: for another, run "hikidashi ui" again.',
} as const

const reused = {
  status: 401,
  headers: { 'WWW-Authenticate': 'Session realm="hikidashi ui", error="reused"' },
  message: 'A second browser used the address, so the address no longer works. Run "hikidashi ui" again.',
} as const

function cookiesOf({ headers }: IncomingMessage): readonly string[] {
  return (headers.cookie ?? '').split(';').flatMap((pair) => {
    const [name = '', value = ''] = pair.trim().split('=', 2)
    return name === cookie ? [value] : []
  })
}
