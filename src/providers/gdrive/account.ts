import { defined } from '../../core/kit/object.ts'
import type { OptionsOfModule, SourceAccount } from '../source.ts'
import { gdriveOAuthClient, tokenFileOf } from './config.ts'
import { requestConsent } from './credentials.ts'

export const account: SourceAccount = {
  clientOf: gdriveOAuthClient,
  tokenFileOf,
  ask: async ({ endpoint }: OptionsOfModule<typeof import('./config.ts')>, client, request) =>
    `${JSON.stringify(await requestConsent({ client, ...request, ...defined({ endpoint }) }), undefined, 2)}\n`,
}
