import { useSignal } from '@preact/signals'
import { announce } from '../state/announce.ts'
import { copy } from '../state/copy.ts'
import { connected } from '../state/session.ts'
import { hostWays } from './hosts.ts'
import { t } from './words.ts'

/** How to add this server to a host: a tab for each, with what to paste. */
export function AddHost() {
  const chosen = useSignal(0)
  const { server, url, isPrivate, asksToken } = connected()
  const ways = hostWays(server.name, url, asksToken())
  const way = ways[chosen.value] ?? ways[0]
  return (
    <section class="home-part" aria-labelledby="add-host">
      <h3 id="add-host">{t('addHost')}</h3>
      <p class="quiet">{t(isPrivate ? 'addPrivate' : 'addHostDo')}</p>
      {isPrivate ? (
        <Command text="hikidashi add HOST FOLDER" />
      ) : (
        <div class="home-hosts">
          <div class="home-tabs" role="group" aria-labelledby="add-host">
            {ways.map(({ host }, index) => (
              <button
                key={host}
                type="button"
                class="button"
                aria-pressed={index === chosen.value}
                onClick={() => {
                  chosen.value = index
                }}
              >
                {host === '*' ? t('other') : host}
              </button>
            ))}
          </div>
          {way === undefined ? null : (
            <>
              <span class="quiet">{way.where === 'terminal' ? t('inTerminal') : t('inFile', { file: way.where })}</span>
              <Command text={way.text} />
            </>
          )}
        </div>
      )}
    </section>
  )
}

function Command({ text }: { readonly text: string }) {
  const say = async () => announce(t((await copy(text)) ? 'copied' : 'notCopied'))
  return (
    <div class="home-command">
      <pre>{text}</pre>
      <button type="button" class="button" onClick={() => void say()}>
        {t('copy')}
      </button>
    </div>
  )
}
