// Ends as programs of Rust end, in the way that its argument names: what the standard library
// writes, without any logger.
use std::fmt;
use std::thread;

#[derive(Debug)]
struct Declined {
    order: u32,
}

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "charge order {}: card declined", self.order)
    }
}

impl std::error::Error for Declined {}

fn charge(order: u32) -> Result<(), Declined> {
    Err(Declined { order })
}

fn price(articles: &[&str], i: usize) -> usize {
    articles[i].len()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    eprintln!("order 4711 placed");
    match std::env::args().nth(1).as_deref() {
        Some("index") => {
            price(&["tea", "milk"], 2);
        }
        Some("expect") => charge(4712).expect("payment failed"),
        Some("assert") => assert_eq!(price(&["tea"], 0), 4, "the basket is wrong"),
        Some("thread") => {
            let till = thread::Builder::new().name("till".into());
            let till = till.spawn(|| panic!("no till is open\nthe shop is shut"))?;
            if till.join().is_err() {
                eprintln!("order 4713 is kept");
            }
        }
        Some("abort") => {
            struct Basket;
            impl Drop for Basket {
                fn drop(&mut self) {
                    panic!("the basket is kept")
                }
            }
            let _basket = Basket;
            panic!("no till is open");
        }
        _ => charge(4712)?,
    }
    Ok(())
}
