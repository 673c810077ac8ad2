import './style/theme.css'
import './style/layout.css'
import { render } from 'preact'
import { App } from './app.tsx'
import { connect } from './mcp/connect.ts'
import type { Endpoint } from './mcp/request.ts'
import { followBrowse } from './state/browse.ts'
import { followHealing } from './state/healing.ts'
import { followChanges } from './state/live.ts'
import { followAddress } from './state/place.ts'
import { keepChoices } from './state/remembered.ts'
import { followAttention, start, takeTicket, wish } from './state/session.ts'

const page = document.getElementById('page')
if (page === null) throw new Error('The page has no place to draw in.')

const admitted = takeTicket(new URL('session', document.baseURI).href)
keepChoices()
followAddress()
followAttention()
followChanges()
followBrowse()
followHealing()
render(<App />, page)
await admitted
// The server says where MCP is, beside the page: `/` and `/mcp`.
const mcp = document.querySelector<HTMLMetaElement>('meta[name=mcp]')?.content ?? 'mcp'
const isPrivate = document.querySelector<HTMLMetaElement>('meta[name=private]')?.content === 'yes'
const endpoint = createKeeper(new URL(mcp, document.baseURI).href, isPrivate)
await start((options) => connect(endpoint, options))

/** The token stays here, in memory: it is in no storage, address or log. */
function createKeeper(url: string, isPrivate: boolean): Endpoint {
  let token: string | undefined
  let renewing: Promise<void> | undefined
  return {
    url,
    isPrivate,
    token: () => token,
    renew: (challenge, error) => {
      renewing ??= new Promise<void>((resolve) => {
        wish.value = {
          what: challenge === 'Session' ? 'address' : 'token',
          isRefused: token !== undefined || error === 'reused',
          give: (given) => {
            token = given
            wish.value = undefined
            renewing = undefined
            resolve()
          },
        }
      })
      return renewing
    },
  }
}
