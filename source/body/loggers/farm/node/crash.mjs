import { charge, decline } from './shop.mjs'

const ends = {
  uncaught: () => { throw charge(4712) },
  reason: () => Promise.reject('card declined'),
  rejection: async () => { throw decline() },
  type: () => { const basket = undefined; return basket.articles },
  syntax: () => import('./basket.mjs'),
  warning: () => process.emitWarning('only 3 packets of tea are left')
}
console.log('order 4711 placed')
ends[process.argv[2]]()
