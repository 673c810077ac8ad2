import { defined } from '../../core/kit/object.ts'
import type { OptionsIn, SourceAccount } from '../source.ts'
import { gdriveClient, tokenFileOf } from './config.ts'
import { askGrant } from './credentials.ts'

/** The OAuth client with which a person lets a mount of Drive read their files. */
export const account: SourceAccount = {
  clientOf: gdriveClient,
  tokenFileOf,
  ask: async ({ endpoint }: OptionsIn<typeof import('./config.ts')>, client, request) =>
    `${JSON.stringify(await askGrant({ client, ...request, ...defined({ endpoint }) }), undefined, 2)}\n`,
}
