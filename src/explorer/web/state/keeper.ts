import type { Endpoint } from '../mcp/request.ts'
import { wish } from './session.ts'

/** The token stays here, in memory: it is in no storage, address or log. */
export function createKeeper(url: string, isPrivate: boolean): Endpoint {
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
