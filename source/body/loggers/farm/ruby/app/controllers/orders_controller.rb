class OrdersController < ActionController::Base
  def show
    raise ArgumentError, "negative amount: -5" if params[:id] == "1002"
    render plain: "ok"
  end
end
