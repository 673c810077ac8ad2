import { defined } from '../core/kit/defined.ts'
import type { Provider } from '../core/provider.ts'
import { providers } from '../providers/index.ts'
import type { MountConfig } from './schema.ts'

/** Opens the displays of this machine. */
export async function openScreen(config: Extract<MountConfig, { readonly provider: 'screen' }>): Promise<Provider> {
  const { screen } = await providers.screen()
  const { displays, program, interval, timeout, maxBytes } = config
  return screen({
    ...defined({ displays, program, interval, timeoutMs: timeout, maxBytes }),
  })
}
