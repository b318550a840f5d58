import { charge, decline } from './shop.mjs'

console.log('order %d placed', 4711)
console.warn('stock is low')
console.error('payment failed', decline())
console.error(charge(4712))
console.log('order %d placed', 4713)
